"""`python -m app` is `strongroom`."""

from app.cli import main

if __name__ == "__main__":
    main()

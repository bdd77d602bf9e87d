"""What Strongroom costs, as ratios to the bare framework and the bare driver; never a test."""

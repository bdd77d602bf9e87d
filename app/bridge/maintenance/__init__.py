"""What operators care for: crashes repaired, roots inspected, fleets brought to the present."""

"""HTTP: shapes, status codes, routing. Never SQL, never a decision the bridge makes."""

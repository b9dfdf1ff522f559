"""What is made of a file of results: tables and pictures. Needs nothing installed but matplotlib, for the pictures."""

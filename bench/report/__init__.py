"""How results are reported: tables and plots of a file of results. Only the plots need a package, matplotlib."""

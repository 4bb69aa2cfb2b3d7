"""What the commands show and ask in a terminal. Numbers come from SQL; here they are only laid out."""

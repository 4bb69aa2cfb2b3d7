"""Files of stored play for other tools, in the formats that ``datasets`` reads."""

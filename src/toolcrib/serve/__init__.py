"""Where tools are served, one file each: the mirror of `sources`."""

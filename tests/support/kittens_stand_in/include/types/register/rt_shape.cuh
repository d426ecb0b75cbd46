// Its presence makes the tree one of the CDNA4 dialect.

"""One module a section of the report; a script of the same name beside it (``.js``) goes into the page with it.

A section is ``TITLE``, ``ORDER``, ``MARTS`` (the views it reads, shown under it) and ``build(warehouse)``, which
gives its HTML fragment.
"""

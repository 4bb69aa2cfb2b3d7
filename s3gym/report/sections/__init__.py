"""One module a section of the report; a script of the same name beside it (``.js``) goes into the page too.

A section is ``TITLE``, ``ORDER``, ``MARTS`` (the views it reads, shown under it) and ``build(warehouse)``,
its HTML fragment; without rows, that is a sentence that says what is missing and how to get it.
"""

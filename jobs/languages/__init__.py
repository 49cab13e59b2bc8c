"""The languages of what people read: the page, the alerts, ``explain`` and ``what-if``.

English is the source: each text is written once, where it is decided. Another language is a folder
here, with a TOML file for each area: ``"English template" = "translation"``.
"""

"""The languages of what people read: the page, the alerts, ``explain`` and ``what-if``.

English is the source: each text is written once, where it is decided. Another language is a folder
here, with a TOML file for each area: ``"English template" = "translation"``. The report itself has
no language, but what shows it. What ``show`` prints as CSV and JSON is English in every language,
for programs read it.
"""

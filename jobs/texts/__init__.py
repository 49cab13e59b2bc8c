"""Values and failures as text, and templates: names that strangers chose are escaped here."""

"""dossier -> observations: answers, memberships, channels, situations, timelines, holdings, events.

Nothing here says that something is wrong.
"""

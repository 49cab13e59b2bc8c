"""dossier -> observations: answers, memberships, channels, situations, timelines, holdings.

Nothing here says that something is wrong.
"""

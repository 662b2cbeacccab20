"""Watches: a contact who has just written is answered at once, by the phone's notifications."""

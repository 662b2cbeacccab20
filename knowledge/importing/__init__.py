"""Imports questions and answers from a person's file: reads it, plans as a dry run, carries it out."""

"""The questions: one record each, whose fields are the options of the command and of the API."""

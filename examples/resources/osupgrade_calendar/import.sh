# The id is the name of the tenant and that of the calendar, with a slash between them.
terraform import osupgrade_calendar.christmas acme/christmas

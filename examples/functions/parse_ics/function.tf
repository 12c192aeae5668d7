locals {
  # An export of a calendar program; most texts come from file("company.ics").
  company = provider::osupgrade::parse_ics(<<-ICS
    BEGIN:VCALENDAR
    BEGIN:VEVENT
    SUMMARY:Freeze: Christmas
    DTSTART;VALUE=DATE:20261220
    DTEND;VALUE=DATE:20270107
    END:VEVENT
    BEGIN:VEVENT
    SUMMARY:Summer party
    DTSTART;TZID=Europe/Stockholm:20260612T150000
    DURATION:PT6H
    END:VEVENT
    END:VCALENDAR
  ICS
  )
}

# Only the freezes: [{ summary = "Freeze: Christmas", start = "2026-12-20", end = "2027-01-07", all_day = true, ... }].
# They can be the events of an osupgrade_calendar.
output "freezes" {
  value = [for event in local.company.events : event if startswith(event.summary, "Freeze")]
}

# Events that never happen and earlier revisions: [] here.
output "left_out" {
  value = local.company.left_out
}

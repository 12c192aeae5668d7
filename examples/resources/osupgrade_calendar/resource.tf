resource "osupgrade_calendar" "christmas" {
  tenant      = "acme"
  name        = "christmas"
  kind        = "freeze"
  description = "The shops are busy."

  events = [
    {
      summary = "Christmas"
      start   = "2026-12-20"
      end     = "2027-01-07"
      all_day = true
      rrule   = "FREQ=YEARLY"
    },
  ]
}

resource "osupgrade_calendar" "quarter_end" {
  tenant = "acme"
  name   = "quarter-end"
  kind   = "allow"

  events = [
    {
      summary  = "After the end of a quarter"
      start    = "2027-01-02T01:00"
      duration = "4h"
      timezone = "Europe/Stockholm"
      rrule    = "FREQ=MONTHLY;INTERVAL=3"
    },
  ]
}

import {
  to = osupgrade_calendar.christmas
  id = "acme/christmas"
}

import {
  to = osupgrade_maintenance_window.weekend
  id = "acme/Friday,Saturday@22:30/Europe/Stockholm/2h"
}

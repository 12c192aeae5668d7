import {
  to = osupgrade_environment.basel
  id = "acme/basel"
}

import {
  to = osupgrade_run.acme
  id = "acme/41"
}

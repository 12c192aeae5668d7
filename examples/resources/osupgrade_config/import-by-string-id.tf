import {
  to = osupgrade_config.acme
  id = "acme"
}

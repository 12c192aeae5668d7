import {
  to = osupgrade_rollout.acme
  id = "acme"
}

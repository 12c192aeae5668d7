import {
  to = osupgrade_policy.night_shift
  id = "acme/night-shift"
}

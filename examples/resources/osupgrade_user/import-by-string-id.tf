import {
  to = osupgrade_user.ann
  id = "acme/ann"
}

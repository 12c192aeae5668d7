import {
  to = osupgrade_approle.deploy
  id = "acme/deploy"
}

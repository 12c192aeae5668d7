import {
  to = osupgrade_tenant.beta
  id = "beta"
}

variable "ann_password" {
  type      = string
  ephemeral = true
}

resource "osupgrade_user" "ann" {
  tenant         = "acme"
  name           = "ann"
  token_policies = ["operator", "approver"]
  token_ttl      = "8h"

  password_wo         = var.ann_password
  password_wo_version = 1
}

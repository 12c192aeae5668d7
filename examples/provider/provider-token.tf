variable "osupgrade_token" {
  type      = string
  ephemeral = true
}

provider "osupgrade" {
  endpoint = "http://127.0.0.1:4646"
  token    = var.osupgrade_token
}

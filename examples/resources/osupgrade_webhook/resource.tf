variable "chat_secret" {
  type      = string
  ephemeral = true
}

resource "osupgrade_webhook" "chat" {
  tenant = "acme"
  name   = "chat"
  url    = "https://hooks.example/osupgrade"
  news   = ["run.blocked", "run.finished", "run.waiting"]

  secret_wo         = var.chat_secret # Make one with: echo whsec_$(openssl rand -base64 32)
  secret_wo_version = 1
}

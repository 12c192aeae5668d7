variable "reason" {
  type    = string
  default = "Somebody has a look"
}

# terraform apply -invoke=action.osupgrade_pause.acme -var 'reason=The database is slow'
action "osupgrade_pause" "acme" {
  config {
    reason = var.reason
  }
}

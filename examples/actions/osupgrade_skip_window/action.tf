variable "reason" {
  type    = string
  default = "Stocktaking"
}

# terraform apply -invoke=action.osupgrade_skip_window.shops
action "osupgrade_skip_window" "shops" {
  config {
    environment  = "shops"
    window_start = "2026-11-29T01:00:00Z"
    reason       = var.reason
  }
}

list "osupgrade_tenant" "all" {
  provider = osupgrade
}

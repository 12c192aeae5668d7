# 1d4h
output "length" {
  value = provider::osupgrade::normalize_duration("28h")
}

# The secret-id comes from the environment variable OSUPGRADE_SECRET_ID.
provider "osupgrade" {
  endpoint = "http://127.0.0.1:4646"
  tenant   = "acme"
  role_id  = "3ca7f2cb-92e3-4e1f-aa89-530cc719ebd2"
}

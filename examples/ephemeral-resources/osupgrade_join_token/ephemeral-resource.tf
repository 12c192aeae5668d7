ephemeral "osupgrade_join_token" "web" {
  tenant      = "acme"
  host        = "web-1"
  application = "appliance"
}

# The token goes over standard input: every user of a machine can read the arguments of its processes.
resource "terraform_data" "web" {
  provisioner "local-exec" {
    command = "printenv JOIN_TOKEN | ssh root@web-1 osupgrade-agent worker join --site https://site.example:4646 --token-file -"
    environment = {
      JOIN_TOKEN = ephemeral.osupgrade_join_token.web.token
    }
  }
}

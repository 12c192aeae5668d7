import {
  to = osupgrade_webhook.chat
  id = "acme/chat"
}

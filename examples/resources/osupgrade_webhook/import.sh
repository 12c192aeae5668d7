# The id is the name of the tenant and that of the webhook, with a slash between them.
terraform import osupgrade_webhook.chat acme/chat

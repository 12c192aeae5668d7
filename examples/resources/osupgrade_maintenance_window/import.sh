# The id is the tenant, the days, the start, the time zone and the duration.
terraform import osupgrade_maintenance_window.weekend acme/Friday,Saturday@22:30/Europe/Stockholm/2h

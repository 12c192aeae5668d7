variable "tenant" {
  description = "The tenant. Defaults to that of the provider."
  type        = string
  default     = null
}

variable "worker_applications" {
  description = "The applications whose hosts are upgraded."
  type        = set(string)

  validation {
    condition     = length(var.worker_applications) > 0
    error_message = "Name at least one application; otherwise no host is upgraded."
  }
}

variable "maintenance_windows" {
  description = "When the hosts may be upgraded."
  type = list(object({
    days_of_week = set(string)
    start_time   = string
    duration     = string
    timezone     = optional(string, "site-local")
  }))
}

variable "freezes" {
  description = "When nothing may be upgraded, whatever window is open: calendars of kind freeze by name, each with events, with the text of an .ics file, or with the https address of one, which the site fetches regularly."
  type = map(object({
    description = optional(string)
    ics         = optional(string)
    url         = optional(string)
    refresh     = optional(string)
    events = optional(list(object({
      start    = string
      end      = optional(string)
      duration = optional(string)
      all_day  = optional(bool)
      rrule    = optional(string)
      summary  = optional(string)
      timezone = optional(string)
    })))
  }))
  default = {}

  validation {
    condition     = alltrue([for freeze in values(var.freezes) : length([for given in [freeze.ics != null, freeze.events != null, freeze.url != null] : given if given]) == 1])
    error_message = "Give each freeze exactly one of events, ics and url."
  }
}

variable "canary" {
  description = "The hosts that are upgraded first, and how long the run then waits. Null: there is no canary stage."
  type = object({
    hosts    = optional(set(string))
    labels   = optional(map(string))
    roles    = optional(set(string))
    soak     = optional(string, "30m")
    approval = optional(bool, false)
  })
  default = null

  validation {
    condition     = var.canary == null || try(var.canary.hosts != null || var.canary.labels != null || var.canary.roles != null, false)
    error_message = "Select the canary hosts by hosts, labels or roles."
  }
}

variable "max_unavailable" {
  description = "How many of the other hosts may be out of service at once, as a count or a percentage."
  type        = string
  default     = "10%"
}

variable "max_failures" {
  description = "How many hosts may fail before on_failure takes effect."
  type        = string
  default     = "1"
}

variable "on_failure" {
  description = "What happens then: stop, pause or continue."
  type        = string
  default     = "stop"
}

variable "checks" {
  description = "What must be healthy before and after each host, as the attribute checks of osupgrade_rollout."
  type        = any
  default     = null
}

variable "hooks" {
  description = "What takes a host out of service and puts it back, as the attribute hooks of osupgrade_rollout."
  type        = any
  default     = null
}

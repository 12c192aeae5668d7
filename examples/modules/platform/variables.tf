variable "topology" {
  description = "Which hosts the platform has: simplex (one controller that does everything), duplex (two controllers that do everything), standard (two controllers with the storage, and workers) or dedicated-storage (two controllers, storage hosts and workers)."
  type        = string

  validation {
    condition     = contains(["simplex", "duplex", "standard", "dedicated-storage"], var.topology)
    error_message = "Use simplex, duplex, standard or dedicated-storage."
  }
}

variable "roles" {
  description = "The roles of the hosts, as their workers report them."
  type = object({
    controller = optional(string, "controller")
    storage    = optional(string, "storage")
    worker     = optional(string, "worker")
  })
  default = {}
}

variable "active" {
  description = "The label of the controller that is active. It follows the machine: each controller keeps it up to date."
  type        = map(string)
  default     = { active = "true" }

  validation {
    condition     = length(var.active) > 0
    error_message = "Name at least one label."
  }
}

variable "standby" {
  description = "The label of the controller that is not active."
  type        = map(string)
  default     = { active = "false" }
}

variable "storage_at_once" {
  description = "How many storage hosts may be out of service at once: at most half of them."
  type        = string
  default     = "50%"
}

variable "workers_at_once" {
  description = "How many workers may be out of service at once, as far as the others have room for their work."
  type        = string
  default     = "10%"
}

variable "soak" {
  description = "How long the run watches the platform after the last host, before it activates the release."
  type        = string
  default     = "0s"
}

variable "step_timeout" {
  description = "How long a step may take."
  type        = string
  default     = "30m"
}

variable "point_of_no_return" {
  description = "The stage with which there is no way back any more: complete, which removes the data of the release before, or former-active, where the old release is on no controller any more."
  type        = string
  default     = "complete"
}

variable "prometheus" {
  description = "The URL of the Prometheus server that knows alarms, storage and nodes. Null: none of them is asked."
  type        = string
  default     = null
}

variable "same_version" {
  description = "The package of which all hosts must have the same version before an upgrade begins."
  type        = string
  default     = null
}

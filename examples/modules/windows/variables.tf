variable "tenant" {
  description = "The tenant. Defaults to that of the provider."
  type        = string
  default     = null
}

variable "windows" {
  description = "When hosts may be upgraded, by a name of your own. A window is known by its content on the server, so another name alone replaces it."
  type = map(object({
    days_of_week = set(string)
    start_time   = string
    duration     = string
    timezone     = optional(string, "site-local")
  }))

  validation {
    condition     = length(distinct(values(var.windows))) == length(var.windows)
    error_message = "Two windows have the same content, and the server can have it once. Remove one of them."
  }
}

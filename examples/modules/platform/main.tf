# The stages of a platform upgrade, in the order in which they must happen, for the four topologies of
# such a platform. It declares nothing itself: give its outputs to osupgrade_rollout.
#
# A step is a script in the folder of the option --checks of the worker of the active controller; each
# must be possible twice. The step has failed if the script fails. With on_failure = "pause" you mend
# the cause and resume the run, which takes the step again.

locals {
  duplex = var.topology != "simplex"

  # A step on the controller that is active when the step begins.
  steps = {
    for name, step in {
      # A copy of the system data, from which the new release is set up.
      start = { script = "platform-start", undo = "platform-start-undo" }
      # Simplex only: the disk of the only host is wiped, so the copy is carried to a safe place.
      copy = { script = "platform-copy" }
      # What a controller of the new release needs to join the old ones, made by the old release.
      join = { script = "platform-join", gives = ["JOIN"] }
      # The other controller becomes the active one.
      swact      = { script = "platform-swact", undo = "platform-swact" }
      swact-back = { script = "platform-swact", undo = "platform-swact" }
      # Simplex only: the copy is migrated to the new release, and the host is put into service.
      restore = { script = "platform-restore" }
      unlock  = { script = "platform-unlock" }
      # What must be changed once all hosts have the new release.
      activate = { script = "platform-activate", undo = "platform-activate-undo" }
      # The data of the release before are removed.
      complete = { script = "platform-complete" }
      } : name => {
      name = name
      step = {
        do    = { type = "exec", script = step.script, timeout = var.step_timeout }
        undo  = try({ type = "exec", script = step.undo, timeout = var.step_timeout }, null)
        match = local.duplex ? { roles = [var.roles.controller], labels = var.active } : { roles = [var.roles.controller], labels = null }
        gives = try(step.gives, null)
      }
      match              = null
      max_unavailable    = null
      soak               = null
      approval           = name == "complete"
      point_of_no_return = name == var.point_of_no_return
    }
  }

  hosts = {
    for name, stage in {
      controller    = { match = { roles = [var.roles.controller], labels = null } }
      standby       = { match = { roles = [var.roles.controller], labels = var.standby } }
      former-active = { match = { roles = [var.roles.controller], labels = null } }
      storage       = { match = { roles = [var.roles.storage], labels = null }, at_once = var.storage_at_once }
      workers       = { match = { roles = [var.roles.worker], labels = null }, at_once = var.workers_at_once }
      } : name => {
      name               = name
      step               = null
      match              = stage.match
      max_unavailable    = try(stage.at_once, "1")
      soak               = name == local.last ? var.soak : null
      approval           = null
      point_of_no_return = name == var.point_of_no_return
    }
  }

  orders = {
    simplex           = ["start", "copy", "controller", "restore", "unlock", "activate", "complete"]
    duplex            = ["start", "join", "standby", "swact", "former-active", "activate", "swact-back", "complete"]
    standard          = ["start", "join", "standby", "swact", "former-active", "workers", "activate", "swact-back", "complete"]
    dedicated-storage = ["start", "join", "standby", "swact", "former-active", "storage", "workers", "activate", "swact-back", "complete"]
  }
  last = { simplex = "controller", duplex = "former-active", standard = "workers", dedicated-storage = "workers" }[var.topology]

  health = concat(
    [{ name = "hosts", type = "hosts", same_version = var.same_version }],
    var.prometheus == null ? [] : [
      for check in concat(
        [
          { name = "alarms", query = "ALERTS{mgmt_affecting=\"true\",alertstate=\"firing\"}" },
          { name = "nodes", query = "kube_node_status_condition{condition=\"Ready\",status!=\"true\"} == 1" },
          { name = "control plane", query = "kube_pod_status_ready{namespace=\"kube-system\",condition=\"false\"} == 1" },
        ],
        var.topology == "simplex" ? [] : [{ name = "storage", query = "ceph_health_status != 0" }],
      ) : { name = check.name, type = "prometheus", url = var.prometheus, query = check.query }
    ],
  )
}

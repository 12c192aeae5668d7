//go:build !worker

package cli

// siteCommands are the commands of a site: its processes, and what works on its folder.
// The program of a host is built without them, and so without the server.
type siteCommands struct {
	Dev         devCommand         `cmd:"" help:"Try it out: run a whole site with simulated hosts in one process." group:"site"`
	Serve       serveCommand       `cmd:"" help:"Run a site: the log, the controllers and the REST API." group:"site"`
	Init        initCommand        `cmd:"" help:"Create the first admin, and a certificate for a site that others reach over the network." group:"site"`
	Backup      backupCommand      `cmd:"" help:"Back up a site, even while it runs." group:"site"`
	Restore     restoreCommand     `cmd:"" help:"Restore a site from a backup." group:"site"`
	Recover     recoverCommand     `cmd:"" help:"Let a site continue with a damaged or outdated log." group:"site"`
	Seal        sealCommand        `cmd:"" help:"Choose what opens the strongbox, which keeps the secrets of a site." group:"site"`
	Credentials credentialsCommand `cmd:"" help:"Create, list and revoke users, approles, API tokens and host keys." group:"let-in"`
}

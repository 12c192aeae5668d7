//go:build !worker

package cli

// siteCommands are the commands of a site: its processes, and what works on its folder.
// The program of a host is built without them, and so without the server.
type siteCommands struct {
	Dev         devCommand         `cmd:"" help:"Run a whole site in one process, with simulated hosts."`
	Serve       serveCommand       `cmd:"" help:"Run a site: the log, the controllers and the REST API."`
	Init        initCommand        `cmd:"" help:"Make the first admin, and a certificate for a site that listens beyond loopback."`
	Backup      backupCommand      `cmd:"" help:"Copy a site, also while it runs."`
	Restore     restoreCommand     `cmd:"" help:"Put a backup of a site in place."`
	Recover     recoverCommand     `cmd:"" help:"Accept the logs of a site as they are, after damage or an older copy."`
	Seal        sealCommand        `cmd:"" help:"Change what opens the strongbox of a site, which seals its secrets."`
	Credentials credentialsCommand `cmd:"" help:"Make, list and withdraw users, approles, tokens of the REST API and keys of hosts."`
}

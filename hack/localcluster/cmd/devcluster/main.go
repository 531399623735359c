// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Command devcluster runs a real Kubernetes cluster of one or two nodes on a Linux machine, without Docker or registry:
// etcd, API server, controller manager, scheduler, kubelet, containerd and runc in private namespaces.
//
//	devcluster up                    start it, or leave it as it is when it is up and healthy
//	devcluster down                  stop it and remove everything but the logs
//	devcluster load IMAGE.tar...     import images, e.g. made by ocipack
//	devcluster kubectl ARGS...       run kubectl against it
//	devcluster exec COMMAND...       run a command on the node, with its network, files and processes
//	devcluster egress ORIGIN         let pods reach an origin such as https://api.openai.com; prints its URL for them
//	devcluster status                say what runs; exit status 1 if it is not up and healthy
//	devcluster restart COMPONENT     kill one of its programs as a crash would, and wait until all is well again
//	devcluster restart-apiserver     the same for kube-apiserver
//
// It keeps everything in one directory (-dir or PARLEY_CLUSTER_DIR); the kubeconfig for this machine is
// DIR/kubeconfig. Clusters in different directories run side by side. The programs come from hack/localcluster/build.sh
// (-bin or PARLEY_CLUSTER_BIN).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

const usage = `usage: devcluster [-dir DIR] [-bin DIR] COMMAND
  up                  start the cluster, or leave it when it is up and healthy
  down                stop it and remove everything but its logs
  load IMAGE.tar...   import container images
  kubectl ARGS...     run kubectl against it
  exec COMMAND...     run a command on the node, with its network, files and processes
  egress ORIGIN       let pods reach an origin such as https://api.openai.com; prints its URL for them
  status              say what runs; exit status 1 if it is not up and healthy
  restart COMPONENT   kill one of its programs, and wait until all is well again
  restart-apiserver   the same for kube-apiserver`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err == nil {
		return
	}
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		os.Exit(ended.ExitCode()) // kubectl's own error, which it has printed
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	}
	fmt.Fprintln(os.Stderr, "cluster:", err)
	os.Exit(1)
}

// run parses the flags and runs one command.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("devcluster", flag.ContinueOnError)
	dir := flags.String("dir", os.Getenv("PARLEY_CLUSTER_DIR"), "directory of the cluster")
	bin := flags.String("bin", os.Getenv("PARLEY_CLUSTER_BIN"), "directory of the programs, as build.sh prints it")
	nodes := flags.Int("nodes", 1, "with how many nodes up starts the cluster: 1 or 2")
	network := flags.String("network", "", "directory of the network's programs, as network/build.sh prints it: with it, "+
		"up starts the cluster with Services, DNS and enforced NetworkPolicies")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		flags.Usage()
		return flag.ErrHelp
	}
	return command(ctx, *dir, *bin, *network, *nodes, flags.Arg(0), flags.Args()[1:])
}

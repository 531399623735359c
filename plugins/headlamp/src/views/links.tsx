// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { Link } from '@kinvolk/headlamp-plugin/lib/components/common';
import { routes } from '../resources';

interface ObjectLinkProps {
  namespace?: string;
  name: string;
  cluster?: string;
}

/** A link to a chat's details. */
export function ChatLink({ namespace = '', name, cluster }: ObjectLinkProps) {
  return (
    <Link routeName={routes.chat} params={{ namespace, name }} activeCluster={cluster}>
      {name}
    </Link>
  );
}

/** A link to an object of another kind, which Headlamp shows by its definition. */
export function ResourceLink(props: ObjectLinkProps & { plural: string }) {
  const { plural, namespace = '', name, cluster } = props;
  const params = { crd: `${plural}.parley.dev`, namespace, crName: name };
  return (
    <Link routeName="customresource" params={params} activeCluster={cluster}>
      {name}
    </Link>
  );
}

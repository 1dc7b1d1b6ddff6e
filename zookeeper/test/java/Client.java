import java.util.Base64;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.zookeeper.CreateMode;

/** Plain operations, so that a test can look at nodes with Java's eyes. Data is Base64. */
final class Client implements Peer.Recipe {
  private final CuratorFramework client;

  Client(CuratorFramework client) {
    this.client = client;
  }

  @Override
  public List<String> call(String operation, List<String> arguments) throws Exception {
    String path = arguments.isEmpty() ? "/" : arguments.get(0);
    switch (operation) {
      case "connected":
        return Peer.words(client.blockUntilConnected(60, TimeUnit.SECONDS));
      case "session":
        return Peer.words("0x" + Long.toHexString(client.getZookeeperClient().getZooKeeper().getSessionId()));
      case "create":
        CreateMode mode = CreateMode.valueOf(arguments.get(1));
        byte[] data = Base64.getDecoder().decode(arguments.size() > 2 ? arguments.get(2) : "");
        return Peer.words(client.create().creatingParentsIfNeeded().withMode(mode).forPath(path, data));
      case "get":
        return Peer.words(Base64.getEncoder().encodeToString(client.getData().forPath(path)));
      case "children":
        return client.getChildren().forPath(path);
      case "exists":
        return Peer.words(client.checkExists().forPath(path) != null);
      case "delete":
        client.delete().deletingChildrenIfNeeded().forPath(path);
        return Peer.words();
      case "close":
        client.close();
        return Peer.words();
      default:
        throw Peer.unknown(operation);
    }
  }
}

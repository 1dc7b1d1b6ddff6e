import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedCountListener;
import org.apache.curator.framework.recipes.shared.SharedCountReader;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Numbers that processes share, and who is there. */
final class Values {
  private Values() {}

  /** PATH SEED; event changed VALUE. */
  static final class Count implements Peer.Recipe {
    private final SharedCount count;

    Count(CuratorFramework client, String name, List<String> arguments) {
      count = new SharedCount(client, arguments.get(0), Integer.parseInt(arguments.get(1)));
      count.addListener(
          new SharedCountListener() {
            @Override
            public void countHasChanged(SharedCountReader reader, int value) {
              Peer.event(name, "changed", String.valueOf(value));
            }

            @Override
            public void stateChanged(CuratorFramework any, ConnectionState state) {
              // the client's own event tells
            }
          });
    }

    @Override
    public List<String> call(String operation, List<String> arguments) throws Exception {
      switch (operation) {
        case "start":
          count.start();
          return Peer.words();
        case "get":
          return Peer.words(count.getCount());
        case "set":
          count.setCount(Integer.parseInt(arguments.get(0)));
          return Peer.words();
        case "trySet": // true when nobody had changed what this process saw last
          return Peer.words(count.trySetCount(count.getVersionedValue(), Integer.parseInt(arguments.get(0))));
        case "close":
          count.close();
          return Peer.words();
        default:
          throw Peer.unknown(operation);
      }
    }
  }

  /** PATH; replies SUCCEEDED VALUE_AFTER. */
  static final class AtomicLong implements Peer.Recipe {
    private final DistributedAtomicLong number;

    AtomicLong(CuratorFramework client, List<String> arguments) {
      number = new DistributedAtomicLong(client, arguments.get(0), new ExponentialBackoffRetry(5, 20, 100));
    }

    private static List<String> told(AtomicValue<Long> value) {
      return Peer.words(value.succeeded(), value.postValue());
    }

    @Override
    public List<String> call(String operation, List<String> arguments) throws Exception {
      switch (operation) {
        case "get":
          return told(number.get());
        case "add":
          return told(number.add(Long.parseLong(arguments.get(0))));
        case "trySet":
          return told(number.trySet(Long.parseLong(arguments.get(0))));
        case "compareAndSet":
          return told(number.compareAndSet(Long.parseLong(arguments.get(0)), Long.parseLong(arguments.get(1))));
        case "forceSet":
          number.forceSet(Long.parseLong(arguments.get(0)));
          return Peer.words();
        case "initialize": // true when there was no value
          return Peer.words(number.initialize(Long.parseLong(arguments.get(0))));
        default:
          throw Peer.unknown(operation);
      }
    }
  }

  /** PATH ID DATA */
  static final class Group implements Peer.Recipe {
    private final GroupMember member;

    Group(CuratorFramework client, List<String> arguments) {
      byte[] data = arguments.get(2).getBytes(StandardCharsets.UTF_8);
      member = new GroupMember(client, arguments.get(0), arguments.get(1), data);
    }

    @Override
    public List<String> call(String operation, List<String> arguments) throws Exception {
      switch (operation) {
        case "start":
          member.start();
          return Peer.words();
        case "members": // ID=DATA each
          List<String> members = new ArrayList<>();
          for (Map.Entry<String, byte[]> entry : member.getCurrentMembers().entrySet()) {
            members.add(entry.getKey() + "=" + new String(entry.getValue(), StandardCharsets.UTF_8));
          }
          return members;
        case "setData":
          member.setThisData(arguments.get(0).getBytes(StandardCharsets.UTF_8));
          return Peer.words();
        case "close":
          member.close();
          return Peer.words();
        default:
          throw Peer.unknown(operation);
      }
    }
  }
}

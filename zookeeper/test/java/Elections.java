import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;

/** Latch and selector. */
final class Elections {
  private Elections() {}

  private static List<String> ids(Collection<Participant> participants) {
    List<String> ids = new ArrayList<>();
    for (Participant participant : participants) ids.add(participant.getId());
    return ids;
  }

  /** PATH ID; events leader and notLeader. */
  static final class Latch implements Peer.Recipe {
    private final LeaderLatch latch;

    Latch(CuratorFramework client, String name, List<String> arguments) {
      latch = new LeaderLatch(client, arguments.get(0), arguments.get(1));
      latch.addListener(
          new LeaderLatchListener() {
            @Override
            public void isLeader() {
              Peer.event(name, "leader");
            }

            @Override
            public void notLeader() {
              Peer.event(name, "notLeader");
            }
          });
    }

    @Override
    public List<String> call(String operation, List<String> arguments) throws Exception {
      switch (operation) {
        case "start":
          latch.start();
          return Peer.words();
        case "hasLeadership":
          return Peer.words(latch.hasLeadership());
        case "await":
          return Peer.words(latch.await(Long.parseLong(arguments.get(0)), TimeUnit.MILLISECONDS));
        case "leader":
          return Peer.words(latch.getLeader().getId());
        case "participants":
          return ids(latch.getParticipants());
        case "close":
          if (arguments.isEmpty()) latch.close();
          else latch.close(LeaderLatch.CloseMode.valueOf(arguments.get(0)));
          return Peer.words();
        default:
          throw Peer.unknown(operation);
      }
    }
  }

  /** PATH ID AUTO_REQUEUE; events take, released (it gave up on request) and interrupted (it was told to). */
  static final class Selector implements Peer.Recipe {
    private final LeaderSelector selector;
    private final SynchronousQueue<String> relinquish = new SynchronousQueue<>();

    Selector(CuratorFramework client, String name, List<String> arguments) {
      selector =
          new LeaderSelector(
              client,
              arguments.get(0),
              new LeaderSelectorListenerAdapter() {
                @Override
                public void takeLeadership(CuratorFramework any) {
                  Peer.event(name, "take");
                  try {
                    relinquish.take();
                    Peer.event(name, "released");
                  } catch (InterruptedException interruption) {
                    Peer.event(name, "interrupted");
                    Thread.currentThread().interrupt();
                  }
                }
              });
      selector.setId(arguments.get(1));
      if (Boolean.parseBoolean(arguments.get(2))) selector.autoRequeue();
    }

    @Override
    public List<String> call(String operation, List<String> arguments) throws Exception {
      switch (operation) {
        case "start":
          selector.start();
          return Peer.words();
        case "hasLeadership":
          return Peer.words(selector.hasLeadership());
        case "relinquish": // true when it was leader and now goes
          return Peer.words(relinquish.offer("", 10, TimeUnit.SECONDS));
        case "requeue":
          return Peer.words(selector.requeue());
        case "interrupt":
          selector.interruptLeadership();
          return Peer.words();
        case "leader":
          return Peer.words(selector.getLeader().getId());
        case "participants":
          return ids(selector.getParticipants());
        case "close":
          selector.close();
          return Peer.words();
        default:
          throw Peer.unknown(operation);
      }
    }
  }
}
